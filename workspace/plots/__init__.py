"""Figures as values, without a screen: what they show, their scales and ticks, and SVG."""
