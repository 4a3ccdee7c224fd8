// Slots and leases under many random schedules, and each broken variant of them, which one of the schedules finds.
'use strict';

const { describeSchedules } = require('./simulator/suite');

describeSchedules({ seeds: 40, most: 192 });
