#include "console/page_request.hpp"

#include "base/text.hpp"

namespace trainyard::api::console {
namespace {

constexpr std::string_view kRoot = "/console";
constexpr std::string_view kCookie = "trainyard_console";
// Scripts, styles, images and requests of this origin only; nothing inline, no frames, no forms
// that leave the page. Svelte makes elements from its own templates under the named policy.
constexpr std::string_view kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types svelte-trusted-html";

bool is_signed(const net::RequestHead& head) {
  return head.headers.has("authorization") ||
         head.query().find("X-Amz-") != std::string_view::npos ||
         head.query().find("AWSAccessKeyId=") != std::string_view::npos;
}

// Browsers send Sec-Fetch-Site only to trustworthy hosts (TLS, this machine), and Origin to all.
bool has_origin(const net::RequestHead& head) {
  return head.headers.has("sec-fetch-site") || head.headers.has("origin");
}

// Returns whether the request signs in with an access key.
bool signs_in(const net::RequestHead& head, std::string_view path) {
  return head.method == "POST" && path == "session" && head.query().empty() &&
         head.headers.get("authorization").find("/trainyard/aws4_request") !=
             std::string_view::npos;
}

Page page_of(const net::RequestHead& head, std::string_view path) {
  const bool get = head.method == "GET" || head.method == "HEAD";
  if (path == "session")
    return get || head.method == "POST" || head.method == "DELETE" ? Page::session : Page::unknown;
  if (path == "rights") return head.method == "POST" ? Page::rights : Page::unknown;
  if (path == "objects") return head.method == "GET" ? Page::data : Page::unknown;
  if (path == "events") return head.method == "GET" ? Page::events : Page::unknown;
  if (path.starts_with("api/")) return head.method == "POST" ? Page::call : Page::unknown;
  return get ? Page::document : Page::unknown;
}

}  // namespace

PageRequest read_page_request(const net::RequestHead& head) {
  PageRequest out;
  std::string_view path = head.path();
  if (!path.starts_with(kRoot)) return out;
  path.remove_prefix(kRoot.size());
  if (!path.empty() && path[0] != '/') return out;
  if (!path.empty()) path.remove_prefix(1);
  // Preflights, uploads and signed requests are S3's.
  if (head.method != "GET" && head.method != "HEAD" && head.method != "POST" &&
      head.method != "DELETE")
    return out;
  if (path.empty() && head.method != "GET" && head.method != "HEAD") return out;
  if (head.headers.has("x-amz-target")) return out;
  if (is_signed(head) && !signs_in(head, path)) return out;
  out.path = path;
  out.page = page_of(head, path);
  if (out.page != Page::call) return out;
  const auto parts = split(path, '/');
  if (parts.size() != 3) {
    out.page = Page::unknown;
    return out;
  }
  out.service = parts[1];
  out.operation = parts[2];
  return out;
}

std::string query_value(const net::RequestHead& head, std::string_view name) {
  for (const auto part : split(head.query(), '&')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || part.substr(0, equals) != name) continue;
    const auto decoded = percent_decode(part.substr(equals + 1), true);
    return decoded && is_utf8(*decoded) ? *decoded : "";
  }
  return "";
}

std::string_view session_cookie(const net::RequestHead& head) {
  for (const auto part : split(head.headers.get("cookie"), ';')) {
    const std::string_view cookie = trim(part);
    if (cookie.starts_with(kCookie) && cookie.substr(kCookie.size()).starts_with('='))
      return cookie.substr(kCookie.size() + 1);
  }
  return "";
}

std::string format_session_cookie(std::string_view secret, bool tls) {
  std::string out(kCookie);
  out += "=";
  out += secret;
  out += "; Path=/console; HttpOnly; SameSite=Strict";
  if (secret.empty()) out += "; Max-Age=0";
  if (tls) out += "; Secure";
  return out;
}

bool is_other_origin(const net::RequestHead& head) {
  return has_origin(head) && head.headers.get("sec-fetch-site") != "none" && !is_same_origin(head);
}

bool is_same_origin(const net::RequestHead& head) {
  if (const auto site = head.headers.get("sec-fetch-site"); !site.empty())
    return site == "same-origin";
  const std::string scheme = head.tls ? "https://" : "http://";
  return head.headers.has("origin") &&
         equals_ignoring_case(head.headers.get("origin"),
                              scheme + std::string(head.headers.get("host")));
}

void add_security_headers(net::Headers& headers) {
  headers.set("Content-Security-Policy", std::string(kContentPolicy));
  headers.set("X-Content-Type-Options", "nosniff");
  headers.set("Referrer-Policy", "no-referrer");
  headers.set("Cross-Origin-Opener-Policy", "same-origin");
  headers.set("Cross-Origin-Resource-Policy", "same-origin");
}

}  // namespace trainyard::api::console
