"""``dra``: DRA objects from the command line."""
