"""Tests jobs with current frameworks."""
