"""What people and programs see: the views of a turn, tables, reports."""
