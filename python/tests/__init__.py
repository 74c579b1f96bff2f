"""Run by the test `elsewhere` of crates/cli, which makes the runs and the reports on them."""
