"""What dead turns have left: found, ended, told, recovered."""
