"""Kernel families: problem + config -> numbers for a template -> PTX with its spec and plan."""
