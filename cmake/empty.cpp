// A module whose headers say everything still is a library.
