// What another region's gradient may be: any bytes are refused, or are so many numbers, which encode to as many bytes.
// decoder: src/compute/local_sgd/coding.cpp
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "local_sgd/coding.hpp"

// The first byte is the coding, the second how many numbers are expected.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::local_sgd;
  if (size < 2) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 2, size - 2);
  if (const auto named = parse_coding(bytes)) CHECK(to_string(*named) == bytes, "a coding has one name");
  const auto coding = Coding(data[0] % (int(coding_last) + 1));
  const auto values = decode(coding, bytes, data[1]);
  if (!values) return 0;
  CHECK(values->size() == data[1] && bytes.size() == coded_bytes(coding, data[1]),
        "as many as were expected");
  const std::string again = encode(coding, *values);
  CHECK(again.size() == bytes.size(), "so many numbers have so many bytes");
  // Blocks of int8 share a scale, which is chosen anew; numbers that are none have several forms.
  const bool numbers =
      std::all_of(values->begin(), values->end(), [](float each) { return !std::isnan(each); });
  CHECK(coding == Coding::int8 || !numbers || again == bytes, "what a coding can say it says again");
  return 0;
}
