"""From other people's files to catalog entries, one importer a file."""
