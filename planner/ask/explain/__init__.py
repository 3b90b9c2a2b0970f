"""Why: the cause of a "no", why not another choice, what one unit more of a limit is worth; by solving again."""
