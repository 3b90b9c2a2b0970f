"""Fit catalog constants to measured step times."""
