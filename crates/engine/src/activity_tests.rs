//! Tests of the activities on the memory driver.
