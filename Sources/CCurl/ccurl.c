// Everything of this target is in its header; a target has to compile something.
#include "ccurl.h"
