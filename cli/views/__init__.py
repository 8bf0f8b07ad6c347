"""What commands print: tables, screens, words."""
