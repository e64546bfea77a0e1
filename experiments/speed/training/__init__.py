"""Cases and contestants of the experiment `training`: whole steps, data loading included."""
