"""Output of commands: tables, screens, JSON, and the help of options."""
