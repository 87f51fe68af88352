"""What a person may choose of a kernel, the rules that a choice must keep, and how to pick one."""
