#include "base/result.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <system_error>

#include "base/check.hpp"
#include "base/enum_table.hpp"

namespace trainyard {

namespace {

constexpr EnumTable<Kind> kKinds{"kind of error",
                                 {{Kind::invalid, "invalid"},
                                  {Kind::denied, "denied"},
                                  {Kind::not_found, "not_found"},
                                  {Kind::conflict, "conflict"},
                                  {Kind::exhausted, "exhausted"},
                                  {Kind::unavailable, "unavailable"},
                                  {Kind::cancelled, "cancelled"},
                                  {Kind::corrupt, "corrupt"},
                                  {Kind::internal, "internal"}}};

}  // namespace

std::string_view to_string(Kind kind) { return kKinds.text(kind); }

Error from_errno(std::string message) { return from_errno(std::move(message), errno); }

Error from_errno(std::string message, int error_number) {
  Kind kind = Kind::internal;
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
    case ESRCH:
    case ENXIO:
      kind = Kind::not_found;
      break;
    case EACCES:
    case EPERM:
    case EROFS:
      kind = Kind::denied;
      break;
    case EEXIST:
    case ENOTEMPTY:
    case EISDIR:
    case EADDRINUSE:
      kind = Kind::conflict;
      break;
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      kind = Kind::exhausted;
      break;
    case EAGAIN:
    case ETIMEDOUT:
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
    case EBUSY:
    case ENETUNREACH:
    case EHOSTUNREACH:
      kind = Kind::unavailable;
      break;
    case ECANCELED:
      kind = Kind::cancelled;
      break;
    case EIO:
      kind = Kind::corrupt;
      break;
    case EINVAL:
    case ENAMETOOLONG:
    case ELOOP:
      kind = Kind::invalid;
      break;
    default:
      break;
  }
  return {kind, std::move(message) + ": " + std::generic_category().message(error_number)};
}

void check_failed(const char* condition, const char* why, const char* file, int line) {
  std::fprintf(stderr, "%s:%d: CHECK(%s) failed: %s\n", file, line, condition, why);
  std::abort();
}

}  // namespace trainyard
