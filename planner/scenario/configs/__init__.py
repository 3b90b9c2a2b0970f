"""Questions from the configuration files of training frameworks and inference engines, one reader a stack."""
