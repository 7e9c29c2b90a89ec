"""The colours and the style of the pictures beside the problems."""

BLUE = "#0060a8"
ORANGE = "#c85a00"
GREEN = "#2f7d32"
GREY = "#8a8a8a"
RED = "#b00020"
STYLE = {
    "svg.hashsalt": "klopt",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
