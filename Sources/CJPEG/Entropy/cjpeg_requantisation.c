#include "cjpeg_requantisation.h"

#include <string.h>

void cjpeg_make_requantisation(
    const JQUANT_TBL *from, const JQUANT_TBL *wanted, cjpeg_requantisation *to
) {
    memset(to, 0, sizeof *to);
    for (int place = 0; place < DCTSIZE2; place++) {
        int natural = cjpeg_natural_place[place];
        float ratio = (float)from->quantval[natural] / (float)wanted->quantval[natural];
        to->ratio[place] = ratio;
        uint32_t *small = to->small + place * CJPEG_SMALL_MAGNITUDES;
        for (int value = (1 << CJPEG_SMALL_BITS) - 1; value > 0; value--) {
            int result = cjpeg_requantised(value, ratio);
            // Then all smaller values become zero, too.
            if (result == 0) break;
            // A leading 1, then the bits of a positive value, or their inverse for the negative
            // one.
            int least = 1 << cjpeg_category(value);
            uint32_t symbol = cjpeg_symbol_of(result);
            small[least + value] = symbol;
            small[2 * least - 1 - value] = symbol ^ ((1u << (symbol >> 16)) - 1);
        }
    }
}
