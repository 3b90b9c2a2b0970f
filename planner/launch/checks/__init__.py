"""What the parser of each stack makes of the files, in the interpreter where the stack is installed.

These modules run there, apart from the planner's environment: they import the stack and the standard library alone.
"""
