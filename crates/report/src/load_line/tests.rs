//! What is said of a load line, in words and letters.
