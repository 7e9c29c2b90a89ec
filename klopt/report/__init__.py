"""What a comparison looks like: one self-contained page, its charts as files, and small tables for notebooks."""

from klopt.html import html_table

__all__ = ["html_table"]
