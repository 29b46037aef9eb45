"""The kinds of pictures: one module each, with `draw(options) -> Figure`."""
