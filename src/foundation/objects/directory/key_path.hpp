// Where a key lies below a bucket's directory, and why keys keep their order there.
//
// A key is cut at its slashes. Each segment becomes one name: its bytes behind a letter that says what it is,
//   d  a directory: the segment is followed by a slash
//   o  an object: the segment is the key's last
//   c  a directory that continues a segment too long for one name: exactly kSegmentBytesMax bytes of it, and
//   the rest
//      (which may be empty) one level down
// so "a/b" is "da/ob". The letter keeps "a" apart from "a/b", and makes "..", "." and "" names like all
// others: nothing leads out of the bucket's directory. Names of one directory, read as key bytes (a "d" name
// with its slash), sort as the keys below them do: that is what lets a listing walk the tree in order. (For
// the "c" names this needs the cut at exactly kSegmentBytesMax also when nothing is left: "o" and "d" names
// are always shorter, so none is a "c" name's equal.)
//
// Threads: pure.
#pragma once

#include <string>
#include <string_view>

namespace trainyard::objects {

inline constexpr size_t kSegmentBytesMax = 200;  // file systems allow 255 bytes a name

// Relative, without a slash at either end. Requires: check_key(key).
std::string path_of(std::string_view key);

// The key bytes that a name of the tree stands for: "oname" -> "name", "dname" -> "name/", "c..." -> its
// bytes. Requires: the name begins with one of the letters.
std::string key_bytes_of(std::string_view file_name);
// The name for key bytes that key_bytes_of gave.
std::string file_name_of(std::string_view key_bytes);
// Whether key bytes of one name are a directory's: they end with a slash or fill a whole name.
bool is_inner(std::string_view key_bytes);

}  // namespace trainyard::objects
