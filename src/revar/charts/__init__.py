"""Charts: what one shows, apart from how it is drawn, with matplotlib or with plotly."""
