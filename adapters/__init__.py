"""One module per harness behind one contract. Nothing here starts a process or imports the sidecar."""
