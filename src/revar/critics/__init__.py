"""Critics: learned values and advantages that take the variance out of returns."""
