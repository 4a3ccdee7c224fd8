// The behaviours of every store and every algorithm, on a clock moved by hand.
'use strict';

const { ALGORITHM_NAMES } = require('./oracle');
const { EACH_STORE } = require('./stores');
const { TOPICS, behavioursOf, runBehaviour } = require('./suite');

describe.each(EACH_STORE)('%s', (_, store) => {
  let place;
  beforeAll(async () => {
    place = await store.open();
  });
  afterAll(() => place.close());

  describe.each(ALGORITHM_NAMES)('%s', (algorithm) => {
    const topics = TOPICS.filter(([, topic]) => behavioursOf(topic, algorithm).length > 0);
    describe.each(topics)('%s', (_topic, topic) => {
      test.each(behavioursOf(topic, algorithm))('%s', async (_sentence, behaviour) => {
        await runBehaviour(behaviour, store, place, algorithm);
      });
    });
  });
});
