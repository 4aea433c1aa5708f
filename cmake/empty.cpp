// A room whose headers say everything still is a library.
