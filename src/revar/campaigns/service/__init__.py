"""The HTTP service: a JSON API and a dashboard over campaigns."""
