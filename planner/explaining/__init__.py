"""Why: the cause of a "no", why not another choice, and what one unit more of each limit is worth; by solving again."""
