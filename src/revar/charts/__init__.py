"""Charts: a record of what is shown, and drawing it with matplotlib or plotly."""
