"""Reports: figures, tables and pages made from stored results. Nothing is run here."""
