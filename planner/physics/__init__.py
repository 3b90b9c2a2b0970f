"""What each layout needs: pure functions, arrays in, arrays out. Times in seconds, sizes in bytes."""
