// Decodes arbitrary bytes as a form. The first byte is the size of the pieces, the first line the
// Content-Type.
// decoder: src/api/protocol/form_data.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "protocol/form_data.hpp"

using namespace trainyard;
using namespace trainyard::api;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  const size_t line = text.find('\n');
  const auto boundary = boundary_of(text.substr(0, line));
  if (!boundary || line == std::string_view::npos) return 0;
  const std::string_view body = text.substr(line + 1);
  const auto read = [&](size_t piece, FormDataReader& reader, std::string& file) {
    for (size_t at = 0; at < body.size(); at += piece)
      if (!reader.feed(body.substr(at, piece), file)) return false;
    return true;
  };
  FormDataReader reader(*boundary), whole(*boundary);
  std::string file, file_of_whole;
  const bool good = read(1 + data[0], reader, file),
             good_whole = read(body.size() + 1, whole, file_of_whole);
  CHECK(good == good_whole, "pieces change nothing");
  if (!good) return 0;
  CHECK(file == file_of_whole && reader.fields() == whole.fields() &&
            reader.finished() == whole.finished(),
        "pieces change nothing");
  CHECK(file.size() <= body.size() && reader.fields().size() <= kFormFieldsMax,
        "the file is not longer than the body");
  return 0;
}
