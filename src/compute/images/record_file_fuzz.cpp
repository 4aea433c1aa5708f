// Reads any bytes as a RecordIO file. Every record that the index lists can be read.
// decoder: src/compute/images/record_file.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "images/record_file.hpp"
#include "os/temporary_directory.hpp"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard;
  static const os::TemporaryDirectory folder;
  const std::string path = folder.path() + "/input.rec";
  CHECK(os::write_file(path, {reinterpret_cast<const char*>(data), size}), "the file is written");
  const auto file = images::RecordFile::open(path);
  if (!file) return 0;
  for (size_t record = 0; record < file->size(); ++record) {
    const auto read = file->read(record);
    CHECK(read, "an indexed record can be read");
    const auto start = file->read_start(record, 6);
    CHECK(start && *start == read->substr(0, 6), "the start of a record is its first bytes");
  }
  return 0;
}
