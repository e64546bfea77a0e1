"""Cases and contestants of the experiment `attention`: the operator beside others."""
