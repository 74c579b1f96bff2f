//! warp's files: the raw `.csv.zst`, row by row, and the aggregated `.json.zst`.
