#include "gateway/fact_check.hpp"

#include <string_view>

#include "base/text.hpp"

namespace trainyard::gateway {
namespace {

constexpr size_t kFactMessageBytesMax =
    16'384;  // FailureReason has 1,024 characters, and a tail of the log before it
constexpr size_t kFactUriBytesMax = 4'096;  // of S3: a bucket and a key
constexpr size_t kAddressBytesMax = 45;     // of IPv6, with an IPv4 part

// Returns true for the digits and separators of an IPv4 or IPv6 address, which is only displayed.
bool looks_like_address(std::string_view text) {
  return !text.empty() && text.size() <= kAddressBytesMax &&
         text.find_first_not_of(text.find(':') == std::string_view::npos
                                    ? "0123456789."
                                    : "0123456789abcdefABCDEF:.") == std::string_view::npos;
}

}  // namespace

Result<wire::StateFact> accepted_fact(wire::StateFact fact) {
  for (const auto* uri : {&fact.staged_model, &fact.model_uri, &fact.output_uri})
    if (uri->size() > kFactUriBytesMax)
      return corrupt("a StateFact names an object that no key can have");
  if (fact.message.size() > kFactMessageBytesMax)
    fact.message = shorten(fact.message, kFactMessageBytesMax);
  if (!looks_like_address(fact.address)) fact.address.clear();
  return fact;
}

}  // namespace trainyard::gateway
