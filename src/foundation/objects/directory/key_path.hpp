// Maps a key to its path below a bucket's directory, so that names sort like keys.
//
// A key is cut at its slashes. Each segment becomes one name: its bytes, prefixed by a letter for
// its type,
//   d  a directory: the segment is followed by a slash
//   o  an object: the segment is the key's last
//   c  a directory that continues a segment too long for one name: exactly kSegmentBytesMax bytes
//      of it, and the rest (which may be empty) one level down
// so "a/b" is "da/ob". The letter keeps "a" apart from "a/b", and makes "..", "." and "" ordinary
// names: no key leads out of the bucket's directory. Names of one directory, read as key bytes (a
// "d" name with its slash), sort like the keys below them: so a listing can walk the tree in order.
// (For the "c" names this needs the cut at exactly kSegmentBytesMax even when nothing is left: "o"
// and "d" names are always shorter, so none equals a "c" name.)
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::objects {

inline constexpr size_t kSegmentBytesMax = 200;  // file systems allow 255 bytes a name

// Returns the path, relative, without a slash at either end. Requires: check_key(key).
std::string path_of(std::string_view key);

// Returns the key bytes of a name in the tree: "oname" -> "name", "dname" -> "name/", "c..." -> its
// bytes. Requires: the name begins with one of the letters.
std::string key_bytes_of(std::string_view file_name);
// Returns the name for key bytes of key_bytes_of().
std::string file_name_of(std::string_view key_bytes);
// True if key bytes of one name are a directory's: they end with a slash or fill a whole name.
bool is_inner(std::string_view key_bytes);

}  // namespace trainyard::objects
