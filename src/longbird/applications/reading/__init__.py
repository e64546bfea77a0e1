"""Reading with a trained model: answers, vectors and search, without what training needs."""
