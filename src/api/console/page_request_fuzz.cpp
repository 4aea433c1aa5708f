// Parses the head of a request as the console does. The first line is the method and the target,
// and each further one a header, "name: value".
// decoder: src/api/console/page_request.cpp src/api/console/data_request.cpp
#include <cstddef>
#include <cstdint>

#include "base/check.hpp"
#include "base/random.hpp"
#include "base/text.hpp"
#include "console/data_request.hpp"
#include "console/page_request.hpp"

namespace {

using namespace trainyard;

net::RequestHead head_of(std::string_view text) {
  net::RequestHead head;
  const auto lines = split(text, '\n');
  if (lines.empty()) return head;
  const auto words = split(lines[0], ' ');
  head.method = words[0];
  if (words.size() > 1) head.target = words[1];
  for (const auto line : std::span(lines).subspan(1)) {
    const size_t colon = line.find(": ");
    if (colon == std::string_view::npos) continue;
    head.headers.add(std::string(line.substr(0, colon)), std::string(line.substr(colon + 2)));
  }
  return head;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace trainyard::api::console;
  net::RequestHead head = head_of({reinterpret_cast<const char*>(data), size});
  const PageRequest request = read_page_request(head);
  CHECK(request.page == Page::none || head.path().starts_with("/console"),
        "other paths are the API's");
  CHECK(request.page == Page::call || request.service.empty(), "a call names its operation");
  CHECK(is_utf8(query_value(head, "job")), "a parameter's value is UTF-8");
  if (const auto data = read_data_request(head)) {
    CHECK(data->bucket.find('/') == std::string::npos, "a bucket has no slash");
    CHECK(data->view != DataView::image || image_type_of(data->key),
          "the name of a picture ends with an image type");
    SeededRandom random(1);
    const SignedIn who{.arn = "arn:aws:iam::123456789012:user/ann",
                       .access_key_id = "AKIAIOSFODNN7EXAMPLE",
                       .region = "eu-west-1"};
    if (const auto call = sign_data_request(*data, who, head, std::string(32, 's'), {}, random))
      CHECK(call->target.find_first_of("\r\n ") == std::string::npos,
            "a target has no blanks or line ends");
    const net::Headers headers = data_headers(*data, 200, head.headers);
    CHECK(headers.get("content-type").find("html") == std::string_view::npos,
          "no response is HTML");
    for (const auto& [name, value] : headers.fields())
      CHECK(value.find_first_of("\r\n") == std::string::npos || name == "Content-Range",
            "a header has no line ends");
  }
  const std::string_view secret = session_cookie(head);
  CHECK(head.headers.get("cookie").find(secret) != std::string_view::npos,
        "the secret is a part of the cookie");
  head.tls = size % 2 == 0;
  CHECK(!is_same_origin(head) || !is_other_origin(head),
        "a page has either this origin or another one");
  net::RequestHead again;
  const std::string cookie = format_session_cookie(secret, head.tls);
  again.headers.add("Cookie", cookie);
  CHECK(session_cookie(again) == secret, "a formatted cookie is read again");
  add_security_headers(again.headers);
  return 0;
}
