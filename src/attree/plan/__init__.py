"""The plan of a configuration: its rows and jobs, and the paths of results."""
