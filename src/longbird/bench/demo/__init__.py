"""The main job shown: a long document is asked questions whose answers are known."""
