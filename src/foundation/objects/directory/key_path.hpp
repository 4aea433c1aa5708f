// Maps a key to its path below a bucket's directory, so that names sort like keys.
//
// A key is split at its slashes. Each segment becomes one file name: a letter for its kind, and the
// bytes of the segment:
//
//   d  a directory: the segment is followed by a slash
//   o  an object: the last segment of the key
//   c  a directory that continues a segment too long for one name: exactly kSegmentBytesMax bytes
//      of it; the rest, which may be empty, is one level down
//
// "a/b" is stored as "da/ob". The letter distinguishes "a" from "a/b", and makes "..", "." and ""
// ordinary names, so no key leads out of the bucket's directory. If the names of a directory are
// read as key bytes (a "d" name with its slash), they sort like the keys below them, so a listing
// can walk the tree in order. (For "c" names this requires the split at exactly kSegmentBytesMax
// even if the rest is empty: "o" and "d" names are always shorter, so none equals a "c" name.)
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::objects {

inline constexpr size_t kSegmentBytesMax = 200;  // file systems allow 255 bytes per name

// Returns the relative path of a key, without a slash at either end. Requires: check_key(key).
std::string path_of(std::string_view key);

// Returns the key bytes of a name in the tree: "oname" -> "name", "dname" -> "name/", "c..." -> its
// bytes. Requires: the name starts with one of the letters.
std::string key_bytes_of(std::string_view file_name);
// Returns the file name whose key_bytes_of() are `key_bytes`.
std::string file_name_of(std::string_view key_bytes);
// Returns true if the key bytes of a name belong to a directory: they end with a slash or have
// kSegmentBytesMax bytes.
bool is_inner(std::string_view key_bytes);

}  // namespace trainyard::objects
