"""Kernelwright makes one region of code in a real repository faster, and proves it."""

__version__ = "0.1.0"
