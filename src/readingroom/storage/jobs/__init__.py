"""Work that outlives the request that began it: kept in a table, done by a runner."""
