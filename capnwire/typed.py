"""What the stubs of schemas are made of; there is nothing here at run time."""
