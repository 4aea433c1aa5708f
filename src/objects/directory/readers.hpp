// Reads objects from files: from one, or from the parts that one lists. A read of the whole is verified: the last bytes
// come only after all of them matched the object's checksum.
//
// Threads: confined to one. Errors: corrupt (cut off, or another checksum), and those of files.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "host/files.hpp"
#include "objects/directory/held_parts.hpp"
#include "objects/directory/part_list.hpp"
#include "objects/directory/record.hpp"
#include "objects/directory/verifier.hpp"
#include "objects/objects.hpp"

namespace trainyard::objects {

struct Opened {
  host::File file;
  Record record;
};

// An object's or a part's file. Errors: not_found without a word of `fault`; corrupt.
Result<Opened> open_recorded(const std::string& path);

// The name of a part's file.
std::string part_name(uint32_t part);

// Requires: the object is not a list of parts, and the range is resolved.
std::unique_ptr<Reader> read_file_of(Opened opened, Range range);

// Where the parts of an object lie: in `directory`, or still in that of its upload.
struct PartsPlace {
  std::string directory;
  std::string upload;
  HeldParts::Hold hold;  // on directory
};
// Errors: corrupt (the list).
Result<std::unique_ptr<Reader>> read_parts_of(Opened opened, PartsPlace place, Range range);

}  // namespace trainyard::objects
