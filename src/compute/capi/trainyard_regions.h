// Keeps the previous name of trainyard_local_sgd.h working until the next version.
#pragma once

#include "capi/trainyard_local_sgd.h"
