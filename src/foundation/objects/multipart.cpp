#include "objects/multipart.hpp"

#include "base/text.hpp"
#include "objects/checksum.hpp"

namespace trainyard::objects {
namespace {

Error bad(Fault fault, const std::string& what) { return invalid(what, fault); }

std::string unquoted(std::string_view etag) {
  if (etag.size() >= 2 && etag.front() == '"' && etag.back() == '"')
    etag = etag.substr(1, etag.size() - 2);
  return std::string(etag);
}

// Returns the checksum of the whole object; "" if a part has no checksum of this algorithm.
Result<std::string> join_checksums(const std::string& algorithm, const std::vector<PartInfo>& parts,
                                   bool of_whole) {
  std::string sums, whole;
  for (const auto& part : parts) {
    const auto sum = part.checksums.find(algorithm);
    if (sum == part.checksums.end()) return std::string();
    const std::string bytes = TRY(from_base64(sum->second));
    sums += bytes;
    if (of_whole)
      whole = whole.empty() ? bytes : TRY(combine_checksums(algorithm, whole, bytes, part.bytes));
  }
  if (of_whole) return to_base64(whole);
  return to_base64(checksum_of(algorithm, sums)) + "-" + std::to_string(parts.size());
}

}  // namespace

Result<void> check_part_number(uint32_t part) {
  if (part >= 1 && part <= kPartsMax) return ok();
  return invalid("invalid part number: it must be between 1 and " + std::to_string(kPartsMax));
}

Result<Joined> join_parts(const std::vector<PartInfo>& requested,
                          const std::map<uint32_t, PartInfo>& stored, const PutOptions& options,
                          const CompleteOptions& declared) {
  if (requested.empty()) return bad(Fault::part_invalid, "an upload needs at least one part");
  for (size_t i = 1; i < requested.size(); ++i)
    if (requested[i].number <= requested[i - 1].number)
      return bad(Fault::part_order, "part " + std::to_string(requested[i].number) +
                                        " comes after part " +
                                        std::to_string(requested[i - 1].number));
  Joined joined;
  std::string md5s;
  std::vector<PartInfo> parts;
  for (size_t i = 0; i < requested.size(); ++i) {
    const PartInfo& want = requested[i];
    const std::string name = "part " + std::to_string(want.number);
    const auto found = stored.find(want.number);
    if (found == stored.end()) return bad(Fault::part_invalid, name + " was not uploaded");
    const PartInfo& part = found->second;
    if (unquoted(want.etag) != part.etag)
      return bad(Fault::part_invalid,
                 name + " has the ETag " + part.etag + ", not the requested one");
    for (const auto& [algorithm, base64] : want.checksums) {
      const auto kept = part.checksums.find(algorithm);
      if (kept != part.checksums.end() && kept->second != base64)
        return bad(Fault::part_invalid,
                   name + " has another " + algorithm + " than the requested one");
    }
    if (i + 1 < requested.size() && part.bytes < kPartBytesMin)
      return bad(Fault::part_too_small, name + " has " + std::to_string(part.bytes) +
                                            " bytes; all but the last must have " +
                                            std::to_string(kPartBytesMin));
    md5s += TRY(from_hex(part.etag));
    joined.bytes += part.bytes;
    parts.push_back(part);
  }
  joined.etag = to_hex(checksum_of("md5", md5s)) + "-" + std::to_string(parts.size());
  for (const auto& [algorithm, announced] : options.checksums) {
    // S3 supports CRC64NVME only for the whole object.
    const bool of_whole = options.checksum_of_whole || algorithm == "crc64nvme";
    std::string sum = TRY(join_checksums(algorithm, parts, of_whole));
    if (!sum.empty()) joined.checksums[algorithm] = std::move(sum);
  }
  if (declared.bytes && *declared.bytes != joined.bytes)
    return corrupt("the parts have " + std::to_string(joined.bytes) +
                       " bytes, but the request declared " + std::to_string(*declared.bytes),
                   Fault::length_mismatch);
  for (const auto& [algorithm, base64] : declared.checksums) {
    const auto kept = joined.checksums.find(algorithm);
    if (kept != joined.checksums.end() && kept->second != base64)
      return corrupt("the joined parts do not match the declared " + algorithm + " of the object",
                     Fault::checksum_mismatch);
  }
  return joined;
}

}  // namespace trainyard::objects
